"""Says what each claim of a study asks, or what is wrong with it: `python tools/claims.py studies/le2003`."""

import sys

from aqmlab.claims.asking import label
from aqmlab.claims.verdict import bound_words
from aqmlab.errors import AqmlabError
from aqmlab.study import definition, folders


def main() -> int:
    """One line a claim and one a question."""
    try:
        for what in sys.argv[1:]:
            for text in definition.read(folders.find(what)).claims:
                print(f"{text.id}: {text.says}")
                for question in text.questions:
                    bound = bound_words(question.low, question.high, question.unit)
                    words = question.reading.formula.words
                    print(f"    {words}: {label(question, text.questions)}: {question.how}, {bound}")
    except AqmlabError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main())
