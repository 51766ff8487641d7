"""Looking at a broker's files from outside: nothing here changes one, so a running broker does not mind."""
