"""From the clients' documents to numbers with a verdict. Pure."""
