"""The sections of the page: each is a function from `Content` to HTML."""
