"""Text from language models: positions, prompts in chunks, sampling, tokenizers."""
