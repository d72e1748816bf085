"""Text catalogues of the report, one YAML file a language."""
