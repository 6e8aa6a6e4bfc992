"""Saved questions: parameterized, read-only SQL for analysts in `sql/questions`."""

from streamwarden.questions.load import Parameter, Question, load_questions
from streamwarden.questions.run import Answer, ParameterError, run_question, unknown_values

__all__ = ["Answer", "Parameter", "ParameterError", "Question", "load_questions", "run_question", "unknown_values"]
