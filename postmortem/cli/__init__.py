"""The command line, the only user of click: ``commands`` defines the commands, ``invocation`` runs one."""
