"""Who is on the other end: SCRAM verifiers, the SASL conversation, principals, the cluster secret."""
