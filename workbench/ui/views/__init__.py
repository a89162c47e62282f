"""One page a module; pages are thin."""
