"""Answer retrieval: a knowledge base of questions and answers, retrievers over it, and how good they are for whom."""

from dialometer.retrieval.kb_reading import read_knowledge_base
from dialometer.retrieval.knowledge_base import Answer, KnowledgeBase
from dialometer.retrieval.queries import Asked, Query, read_asked
from dialometer.retrieval.retriever import RETRIEVERS, Fitted, Retriever, make_retriever
from dialometer.retrieval.top_k import Ranking
from dialometer.retrieval.work import Work

__all__ = [
    "RETRIEVERS",
    "Answer",
    "Asked",
    "Fitted",
    "KnowledgeBase",
    "Query",
    "Ranking",
    "Retriever",
    "Work",
    "make_retriever",
    "read_asked",
    "read_knowledge_base",
]
