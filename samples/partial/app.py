from pysandboxes import sandbox_denials, sandboxes
from tools import count_words

if __name__ == "__main__":
    with sandboxes():
        print(count_words("data/notes.txt"), "words")
        try:
            count_words("/etc/passwd")
        except FileNotFoundError as error:
            print(type(error).__name__)
            print(sandbox_denials(error)[0])
