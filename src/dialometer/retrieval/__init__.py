"""Answer retrieval: a knowledge base of questions and answers, retrievers over it, and how good they are for whom."""

from dialometer.neural.work import Work
from dialometer.retrieval.knowledge_base import Answer, KnowledgeBase, read_knowledge_base
from dialometer.retrieval.queries import Query, QuerySet, read_queries
from dialometer.retrieval.retriever import RETRIEVERS, FittedRetriever, Ranking, Retriever, make_retriever

__all__ = [
    "RETRIEVERS",
    "Answer",
    "QuerySet",
    "FittedRetriever",
    "KnowledgeBase",
    "Query",
    "Ranking",
    "Retriever",
    "Work",
    "make_retriever",
    "read_queries",
    "read_knowledge_base",
]
