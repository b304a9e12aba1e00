from typing import Any


def last_text(output: list[dict[str, Any]]) -> str:
    """The text of the last assistant message of a response's output; empty where there is none."""
    for item in reversed(output):
        if item.get("type") == "message" and item.get("role") == "assistant":
            content = item.get("content")
            parts = content if isinstance(content, list) else [{"text": content}]
            texts = (part.get("text") for part in parts if isinstance(part, dict))
            return "".join(text for text in texts if isinstance(text, str))
    return ""
