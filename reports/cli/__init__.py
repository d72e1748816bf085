"""The command line: one module a verb, loaded when the verb is called."""
