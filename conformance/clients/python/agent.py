"""Agent: a process of turnery, and the official client that talks to it."""

import asyncio
import os
from contextlib import asynccontextmanager

import acp
from acp.schema import (
    AllowedOutcome,
    DeleteSessionRequest,
    DeleteSessionResponse,
    Implementation,
    RequestPermissionResponse,
)

from history import History


# A server of models that happens to run on this machine would be in the list of models: nobody answers at port 1.
LOCAL_SERVERS = ["LLAMACPP_BASE_URL", "LMSTUDIO_BASE_URL", "OLLAMA_HOST", "VLLM_BASE_URL"]


def plain(value):
    """As it stood on the wire."""
    return value.model_dump(mode="json", by_alias=True, exclude_none=True, exclude_unset=True)


class Person(acp.Client):
    """The client's side: keeps what it is sent, and answers what it is asked."""

    def __init__(self):
        self.histories = {}
        self.asked = []
        # What it will say, in this order.
        self.answers = []
        self.news = asyncio.Event()

    def of(self, session):
        return self.histories.setdefault(session, History())

    async def session_update(self, session_id, update, **_):
        self.of(session_id).take(plain(update))
        self.news.set()

    async def request_permission(self, options, session_id, tool_call, **_):
        kind = self.answers.pop(0)
        self.asked.append([tool_call.title, sorted(option.kind for option in options), kind])
        chosen = next(option for option in options if option.kind == kind)
        outcome = AllowedOutcome(outcome="selected", option_id=chosen.option_id)
        return RequestPermissionResponse(outcome=outcome)


class Agent:
    """What the story asks of an agent, in plain values."""

    def __init__(self, connection, person, project):
        self.connection = connection
        self.person = person
        self.at = {"cwd": str(project), "mcp_servers": []}

    async def hello(self):
        info = Implementation(name="python", version="1")
        return plain(await self.connection.initialize(protocol_version=1, client_info=info))

    async def new(self, **at):
        return plain(await self.connection.new_session(**(at or self.at)))

    async def load(self, session):
        return plain(await self.connection.load_session(session_id=session, **self.at))

    async def resume(self, session):
        return plain(await self.connection.resume_session(session_id=session, **self.at))

    async def fork(self, session):
        return plain(await self.connection.fork_session(session_id=session, **self.at))

    async def close(self, session):
        await self.connection.close_session(session_id=session)

    async def delete(self, session):
        # Version 0.12.1 has the types of session/delete and no method for it.
        request = plain(DeleteSessionRequest(session_id=session))
        answer = await self.connection._conn.send_request("session/delete", request)
        DeleteSessionResponse.model_validate(answer)

    async def pages(self, project):
        """The sessions of a folder, page by page."""
        pages, cursor = [], None
        while True:
            page = await self.connection.list_sessions(cwd=str(project), cursor=cursor)
            pages.append([plain(session) for session in page.sessions])
            cursor = page.next_cursor
            if cursor is None:
                return pages

    async def set_mode(self, session, mode):
        await self.connection.set_session_mode(session_id=session, mode_id=mode)

    async def set_option(self, session, option, value):
        set_option = self.connection.set_config_option
        return plain(await set_option(session_id=session, config_id=option, value=value))

    async def prompt(self, session, text):
        """Why it stopped."""
        self.person.of(session).prompted(text)
        answer = await self.connection.prompt(session_id=session, prompt=[acp.text_block(text)])
        return answer.stop_reason

    async def cancel(self, session, text, seen):
        """Prompt, and cancel once `seen` is part of what came last."""
        items = self.person.of(session).items
        answer = asyncio.create_task(self.prompt(session, text))
        while not items or seen not in str(items[-1]):
            self.person.news.clear()
            await self.person.news.wait()
        await self.connection.cancel(session_id=session)
        return await answer


async def code(awaitable):
    """The error that the agent answers with."""
    try:
        return f"no error: {await awaitable}"
    except acp.RequestError as error:
        return error.code


@asynccontextmanager
async def started(command, home, project):
    person = Person()
    env = {"PATH": os.environ["PATH"], "HOME": str(home), "TURNERY_HOME": str(home / "turnery")}
    env |= {name: "http://127.0.0.1:1/v1" for name in LOCAL_SERVERS}
    async with acp.spawn_agent_process(
        person,
        *command,
        env=env,
        transport_kwargs={"stderr": None},
        use_unstable_protocol=True,
    ) as (connection, process):
        yield Agent(connection, person, project)
    assert process.returncode == 0, f"turnery ended with {process.returncode}"
