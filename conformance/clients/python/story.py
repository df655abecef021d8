"""Story: a whole session, and what came of it, in the words of `../whole-session.json`."""

import copy

from agent import code, started
from history import History, current


async def told(command, model, home):
    """The whole story, told by an agent that `command` starts."""
    project, many = home / "project", home / "many"
    for folder in [project, many, home / "turnery"]:
        folder.mkdir()
    (project / "greeting.txt").write_text("Hello, world\n")
    (home / "turnery/config.toml").write_text(f'[models."{model}"]\ncontext_window = 10_000\n')
    tale = {}
    async with started(command, home, project) as agent:
        session, before = await begin(agent, project, model, tale)
    async with started(command, home, project) as agent:
        await go_on(agent, project, session, before, tale)
        fork = await leave_and_come_back(agent, session, before, tale)
        await tidy_up(agent, project, many, session, fork, tale)
    return tale


def files(project):
    return {path.name: path.read_text() for path in project.iterdir()}


async def begin(agent, project, model, tale):
    """The first process: prompts, permissions, settings, cancels."""
    hello = await agent.hello()
    can = hello["agentCapabilities"]
    used = {"close", "delete", "fork", "list", "resume"}
    tale["hello"] = {
        "version": hello["protocolVersion"],
        "name": hello["agentInfo"]["name"],
        "load": can["loadSession"],
        "sessions": sorted(used.intersection(can["sessionCapabilities"])),
    }
    made = await agent.new()
    session = made["sessionId"]
    history = agent.person.of(session)
    tale["new"] = {"mode": made["modes"]["currentModeId"], "options": current(made)}

    agent.person.answers = ["allow_once", "reject_once", "allow_once"]
    stop = await agent.prompt(session, "Greet the world")
    usage = history.newest["usage_update"]
    tale["greeted"] = {
        "stop": stop,
        "asked": list(agent.person.asked),
        "statuses": copy.deepcopy(list(history.statuses.values())),
        "files": files(project),
        "plan": history.plan(),
        "usage": {"used": usage["used"], "size": usage["size"]},
    }

    tale["edited"] = {"error of a mode that is none": await code(agent.set_mode(session, "none"))}
    await agent.set_mode(session, "edit")
    tale["edited"] |= {
        "told": history.options(),
        "stop": await agent.prompt(session, "Change it again"),
        "files": files(project),
        "plan": history.plan(),
    }

    changes = [("thinking", "high"), ("mode", "auto"), ("model", "offline")]
    answers = [await agent.set_option(session, *change) for change in changes]
    models = next(option for option in answers[-1]["configOptions"] if option["id"] == "model")
    tale["set"] = {
        "answers": [current(answer) for answer in answers],
        "mode told": history.newest["current_mode_update"]["currentModeId"],
        "models": [option["value"] for option in models["options"]],
        "stop of the other model": await agent.prompt(session, "show greeting.txt"),
        "back": current(await agent.set_option(session, "model", model)),
    }

    tale["cancelled"] = {
        "while it talks": await agent.cancel(session, "Wait for me", "thinking about it"),
        "while a tool runs": await agent.cancel(session, "Run something long", "begun\\n"),
        "asked in all": len(agent.person.asked),
    }
    tale["live"] = history.items
    return session, history


async def go_on(agent, project, session, before, tale):
    """The second process: it knows all that was said in the first."""
    await agent.hello()
    listed = [one for page in await agent.pages(project) for one in page]
    assert [one["sessionId"] for one in listed] == [session]
    tale["listed"] = [{"cwd": one["cwd"], "title": one.get("title")} for one in listed]

    answer = await agent.load(session)
    history = agent.person.of(session)
    same = history.items == before.items
    tale["loaded"] = {
        "history": "as live" if same else copy.deepcopy(history.items),
        "plan": history.plan(),
        "mode": answer["modes"]["currentModeId"],
        "options": current(answer),
        "ids are those of before": history.ids_of_the_agent() == before.ids_of_the_agent(),
        "stop": await agent.prompt(session, "What did you do?"),
        "answer": history.items[-1],
    }


async def leave_and_come_back(agent, session, before, tale):
    """Fork, close, load and resume."""
    fork = (await agent.fork(session))["sessionId"]
    assert fork != session
    tale["forked"] = {"error of the model": await code(agent.prompt(fork, "Break down"))}
    await agent.close(fork)
    tale["forked"]["error when closed"] = await code(agent.prompt(fork, "Hello?"))
    history = agent.person.histories[fork] = History()
    await agent.load(fork)
    length = len(before.items)
    same = history.items[:length] == before.items
    after = history.items[length:] if same else history.items
    tale["forked"]["history after that of before"] = after

    await agent.close(session)
    history = agent.person.histories[session] = History()
    await agent.resume(session)
    tale["resumed"] = {
        "history": copy.deepcopy(history.items),
        "stop": await agent.prompt(session, "Do something forbidden"),
    }
    return fork


async def tidy_up(agent, project, many, session, fork, tale):
    """List page by page, and delete."""
    for _ in range(101):
        await agent.new(cwd=str(many), mcp_servers=[])
    pages = await agent.pages(many)
    tale["pages"] = {
        "sizes": [len(page) for page in pages],
        "sessions": len({one["sessionId"] for page in pages for one in page}),
    }

    names = {session: "session", fork: "fork"}
    [listed] = await agent.pages(project)
    tale["deleted"] = {"before": sorted(names[one["sessionId"]] for one in listed)}
    await agent.delete(fork)
    await agent.close(session)
    await agent.delete(session)
    [tale["deleted"]["after"]] = await agent.pages(project)
    tale["deleted"]["error of a load"] = await code(agent.load(session))
