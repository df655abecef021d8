"""History: what a client would show of a session, made from the updates that it was sent."""

TEXTS = {
    "user_message_chunk": "user",
    "agent_message_chunk": "agent",
    "agent_thought_chunk": "thought",
}
SHOWN = ["title", "kind", "status", "locations", "content"]


class History:
    """The messages and calls in order, and the newest of each kind of update."""

    def __init__(self):
        self.items = []
        # For each item its id; none for what this client's own person said.
        self.ids = []
        # For each call the statuses that it was told to have.
        self.statuses = {}
        self.newest = {}

    def prompted(self, text):
        """A live prompt is not sent back."""
        self.items.append({"user": text})
        self.ids.append(None)

    def take(self, update):
        kind = update["sessionUpdate"]
        self.newest[kind] = update
        if kind in TEXTS:
            self.text(TEXTS[kind], update["messageId"], update["content"]["text"])
        elif kind in ("tool_call", "tool_call_update"):
            self.call(update["toolCallId"], update)

    def text(self, speaker, name, text):
        if self.ids and self.ids[-1] == name and speaker in self.items[-1]:
            self.items[-1][speaker] += text
        else:
            self.items.append({speaker: text})
            self.ids.append(name)

    def call(self, name, update):
        if name not in self.ids:
            self.items.append({"call": {}})
            self.ids.append(name)
        call = self.items[self.ids.index(name)]["call"]
        call.update({field: update[field] for field in SHOWN if field in update})
        # A call that says no status when it is announced is pending.
        announced = "pending" if update["sessionUpdate"] == "tool_call" else None
        status = update.get("status", announced)
        if status:
            self.statuses.setdefault(name, []).append(status)

    def ids_of_the_agent(self):
        """The ids of all but the user's messages."""
        return [name for name, item in zip(self.ids, self.items) if "user" not in item]

    def plan(self):
        return self.newest.get("plan", {}).get("entries")

    def options(self):
        return current(self.newest.get("config_option_update", {}))


def current(answer):
    """What each option is set to, by an answer or an update that has them all."""
    return {option["id"]: option["currentValue"] for option in answer.get("configOptions", [])}
