"""The work itself, without Hearth: a dict in, a dict out. Replace it by yours."""


def count(data):
    """The number of words of data["text"] and the longest of them; ValueError when there is no text."""
    text = data.get("text") if isinstance(data, dict) else None
    if not isinstance(text, str):
        raise ValueError("`raw_data.text` must be a string")
    words = text.split()
    return {"words": len(words), "longest": max(words, key=len, default="")}
