"""Reports: the command line, the market report and its figures."""
