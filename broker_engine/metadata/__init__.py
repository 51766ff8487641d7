"""What the cluster is: records in the metadata log, the image they make, the commands that write more of them."""
