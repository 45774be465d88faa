"""A server: language models as OpenAI's API has them, other networks by the V2 protocol."""
