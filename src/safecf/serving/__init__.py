"""A model as a service: answers over HTTP, and a page to try them."""
