"""The command line, and all that knows click: ``commands`` has a function a command, ``invocation`` runs one."""
