"""What learned, retrieval and generators share: device, encoder, embedding cache, training loop, Ray."""
