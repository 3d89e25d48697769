"""The learned evaluator: from noisy self-reported ratings to a model that compares dialogues.

Liang, Zou and Yu, Beyond User Self-Reported Likert Scale Ratings: A Comparison Model for Automatic Dialog Evaluation (CMADE),
ACL 2020.
"""
