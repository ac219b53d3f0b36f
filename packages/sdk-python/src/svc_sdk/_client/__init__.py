"""One request: its route, deadline, repeats and errors."""
