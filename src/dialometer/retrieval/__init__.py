"""Answer retrieval: a knowledge base of questions and answers, retrievers over it, and how good they are by whose judgment."""
