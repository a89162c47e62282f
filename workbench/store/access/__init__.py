"""Who sees what: visibility, filters, masking."""
