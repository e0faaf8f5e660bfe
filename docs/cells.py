"""The measurements behind the documentation's tables. A cell is a data file and the command that writes it; docs/measure.py
(`make results`) runs them, docs/tables.py makes tables of the files."""
import fnmatch
from dataclasses import dataclass


@dataclass(frozen=True)
class Cell:
    """Commands run in the root of the checkout. OUT stands for the folder of data files, $DATA for a folder of prompts
    (docs/benchmarks.md), $MODEL for the default model, $MODELS for a folder of models with random weights (MODELS)."""
    name: str            # of the data file, without .json
    command: str
    device: str = "cpu"  # or "gpu", with the programs of build-cuda
    # The number of turns is added to the command: enough for plain decoding to be level with itself (docs/measure.py).
    repeats: bool = False
    # Run before each start of the command, with the same cache folder, which is new: so the command begins with what this one
    # learned, and with nothing else.
    first: str = ""

    @property
    def file(self):
        return f"{self.name}.json"

    @property
    def commands(self):
        """As files record them."""
        return ({"first": self.first} if self.first else {}) | {"command": self.command}

    def wrote(self, record):
        """Whether a record of commands is that of this cell."""
        return self.commands == {name: record[name] for name in ("command", "first") if name in record}


def bench(name, prompts, arguments, device="cpu", first="", settings=""):
    """A cell of `knap bench` on prompts, repeated as far as needed. `settings` are of the environment."""
    build = "build-cuda" if device == "gpu" else "build"
    model = "" if prompts.startswith("-m ") else "-m $MODEL "
    return Cell(name, f"{settings}{build}/knap bench {model}{prompts} {arguments} -o OUT/{name}.json", device, repeats=True,
                first=first)


def second(name, kind, arguments, how="", settings=""):
    """A cell whose strategies begin with what a first run learned: on other prompts of this kind, those tuned on."""
    once = f"{settings}build/knap bench -m $MODEL {TUNED[kind]} -n 192 -r 1 --strategies knapspec {MEMORY} {how}".rstrip()
    return bench(name, CLASSES[kind], f"{arguments} {MEMORY} {how}".rstrip(), first=once, settings=settings)


def program(name, command, device="cpu"):
    """A cell of a program in bench/."""
    return Cell(name, f"{command} --json OUT/{name}.json", device)


# The first prompts of each file, and of each task of Spec-Bench, are those that knap was tuned on. Figures are of others.
N_TUNED = 5


def data(files, limit, is_tuned=False):
    """`limit` prompts of each file, of those that knap was tuned on or after them."""
    skip = "" if is_tuned else f"--skip {N_TUNED} "
    return f"--data {','.join('$DATA/' + file for file in files.split())} {skip}--limit {limit}"


def serve(name, question):
    """A cell of a question about `knap serve`."""
    return Cell(name, f"bench/serve/run.py --knap build/knap --model $MODEL --only {question} -o OUT/{name}.json")


def paper(*settings):
    """knapspec-paper with each setting."""
    return "'" + ",".join(f"knapspec-paper({setting})" for setting in settings) + "'"


def specbench(*tasks):
    return " ".join(f"specbench.jsonl:{task}" for task in tasks)


# Kinds of prompts: their files, how many prompts of each are measured, and how many are the first run of a second one. Every
# cell of strategies has 16 prompts or more. Spec-Bench has 7 of most tasks, so 2 that nothing was tuned on, and 56 of `qa`.
CHAT_FILES = specbench("writing", "roleplay", "stem", "humanities", "qa")
DOCUMENT_FILES = "govreport.jsonl pg19.jsonl booksum.jsonl"
TASK_FILES = specbench("writing", "roleplay", "reasoning", "math", "coding", "extraction", "stem", "humanities", "translation",
                       "summarization", "qa", "math_reasoning", "rag") + " gsm8k.jsonl humaneval.jsonl"
KINDS = {
    "chat": (CHAT_FILES, 8, 1),
    "math": ("gsm8k.jsonl", 16, 5),
    "code": ("humaneval.jsonl", 16, 5),
    "reasoning": ("aime24.jsonl aime25.jsonl mmlu_pro.jsonl", 6, 2),
    "document": (DOCUMENT_FILES, 6, 1),
    "pages": (DOCUMENT_FILES, 6, 1),   # the same, shorter
    "short": (f"{TASK_FILES} aime24.jsonl aime25.jsonl", 2, 1),   # some of all tasks with short prompts
}
CUTS = {"document": " --max-prompt-tokens 7680", "pages": " --max-prompt-tokens 2048"}
CLASSES = {kind: data(files, limit) + CUTS.get(kind, "") for kind, (files, limit, _) in KINDS.items()}
TUNED = {kind: data(files, n_first, is_tuned=True) + CUTS.get(kind, "") for kind, (files, _, n_first) in KINDS.items()}
PARTS_OF = ("chat", "math", "code", "reasoning", "document")
DOCUMENTS = data(DOCUMENT_FILES, 6)
REPORTS = data("govreport.jsonl booksum.jsonl", 8)
TASKS = data(TASK_FILES, 16)

EVERY = ("-n 128 --adapter models/kangaroo-smollm2-135m.gguf --strategies "
         "'lookup,knapspec,knapspec-paper,knapspec-paper(variant=paper),clasp,swift,del,del/10,"
         "draft-verify/12/l1+5+9+13+17+21+25=skip,asd,layerskip/2/exit=3,kangaroo'")
# What a second run knows: nothing that `knap profile` saved, and all that the first learned.
MEMORY = "--profile none --memory on"
# The default strategy, what it could have been in hindsight, and itself without each of its parts.
WINDOWS = ",".join(f"static/4/a=w16+{recent}" for recent in (64, 128, 256, 512, 1024))
PARTS = (f"-n 192 --strategies 'lookup,{WINDOWS},knapspec,knapspec(copies=off),knapspec(plans=off),knapspec(cascade=off),"
         "knapspec(knapsack=never),knapspec(memory=off)'")
SHORT = "-n 192 --strategies 'lookup,static/4/a=w16+64,static/4/a=w16+128,knapspec'"
# Every prompt as a run of its own.
RUNS = "-n 192 --strategies 'knapspec,knapspec(memory=off)' --fresh-strategies"
PEERS = "-n 128 --strategies lookup,knapspec --peer llama,ngram-simple,ngram-map-k,ngram-mod"
SAMPLED = "--temp 0.7 --top-k 50 --top-p 0.95 --min-p 0 --seed 1"

# Shapes of `knap make-model`, and to how many layers they are cut.
SHAPES = {
    "ernie-4.5-0.3b": 18, "exaone-4.0-1.2b": 10, "gemma-2-2b": 6, "gpt-oss-20b": 4, "granite-3.1-3b-a800m": 8, "granite-3.3-2b": 8,
    "hunyuan-1.8b": 8, "llama-3.2-1b": 8, "ministral-3-8b": 3, "mixtral-8x7b": 1, "olmo-3-7b": 4, "phi-4-mini": 4,
    "qwen3-30b-a3b": 3, "qwen3-4b": 4, "qwen3-vl-4b": 4, "seed-oss-36b": 1, "smollm3-3b": 6,
}
# Those on the EPYC; Q4_K needs rows in multiples of 256, which two of them do not have.
EPYC_SHAPES = {"gemma-3-4b": 6, "glm-4-9b": 8, "olmo-3-7b": 4, "qwen2.5-0.5b": 12}
EXPERTS = ("gpt-oss-20b", "granite-3.1-3b-a800m", "mixtral-8x7b", "qwen3-30b-a3b")


def type_of(shape):
    return {"gpt-oss-20b": "MXFP4", "glm-4-9b": "Q4_0", "qwen2.5-0.5b": "Q4_0"}.get(shape, "Q4_K_M")


def cut(shape, n_layers):
    """The file of a shape."""
    return f"{shape}.{n_layers}-layers.{type_of(shape)}.gguf"


def flags(shape, n_layers):
    head = " --head-type Q8_0" if type_of(shape) == "MXFP4" else ""
    return f"--shape {shape} --layers {n_layers} --type {type_of(shape)}{head}"


# The paper's comparison on the models with 24 layers, whose tokens are bytes.
PAPER_METHODS = ("-n 400 --strategies 'del,swift,clasp,knapspec-paper,knapspec-paper(variant=paper),knapspec,knapspec(copies=off),"
                 "knapspec(copies=off;knapsack=never)'")
BYTE_PROMPTS = {
    "short": data(CHAT_FILES, 8),
    "long": data(DOCUMENT_FILES, 6) + " --max-prompt-tokens 6000",
}

# Models with random weights by the name of their file; the flags of `knap make-model` that write them.
MODELS = {
    **{cut(*shape): flags(*shape) for shape in [*SHAPES.items(), *EPYC_SHAPES.items()]},
    "8b-q4_0.gguf": "--shape llama-3.1-8b --type Q4_0",
    "8b-f16.gguf": "--shape llama-3.1-8b --type F16",
}
PAPER_MODELS = "llama-3.2-1b,llama-3.1-8b,qwen3-8b,qwen3-14b,qwen3-32b,llama-3.1-70b"

CELLS = [
    program("cpu-decode", "build/decode_bench $MODEL --prefill 512,7680 --depths 16,512,1024,2048,4096,7680"),
    program("cpu-2-cores-decode", "build/decode_bench $MODEL --threads 2 --prefill 512,4096 --depths 16,2048,7680"),
    program("cpu-decode-avx2", "KNAP_ISA=avx2 build/decode_bench $MODEL --prefill 512 --depths 16,2048"),
    *(program(f"{group}-{shape}", f"build/decode_bench $MODELS/{cut(shape, n_layers)} --threads 2 --prefill 128 --depths 16,4096")
      for group, shapes in (("cpu-shape", SHAPES), ("cpu-epyc-shape", EPYC_SHAPES)) for shape, n_layers in shapes.items()),
    *(program(f"cpu-experts-{shape}", f"build/shape_bench --shapes {shape} --types {type_of(shape)} --layers {SHAPES[shape]} "
              f"--exits {SHAPES[shape]} --depths 256 --rows 1,2,4,8 --plans 'full;m=e4;m=e2;m=skip' --device CPU")
      for shape in EXPERTS),
    program("cpu-verify", "build/verify_bench $MODEL"),
    program("cpu-draft", "build/draft_bench $MODEL"),
    *(second(f"cpu-parts-{kind}", kind, PARTS) for kind in PARTS_OF),
    *(second(f"cpu-sampled-parts-{kind}", kind, PARTS, SAMPLED) for kind in ("chat", "code")),
    second("cpu-short", "short", SHORT),
    second("cpu-short-avx2", "short", SHORT, settings="KNAP_ISA=avx2 "),
    *(second(f"cpu-memory-{kind}", kind, RUNS) for kind in ("short", "document")),
    *(second(f"cpu-peers-{kind}", kind, f"{PEERS},ngram-map-k4v,ngram-cache") for kind in ("chat", "code")),
    second("cpu-peers-document", "pages", PEERS),
    *(bench(f"cpu-strategies-{kind}", CLASSES[kind], EVERY) for kind in PARTS_OF),
    *(bench(f"cpu-sampled-{name}", CLASSES[name], f"{EVERY} {SAMPLED}") for name in ("reasoning", "document")),
    bench("cpu-tasks", TASKS, "-n 192 --strategies lookup,knapspec --peer llama"),
    *(bench(f"cpu-context-{length}", DOCUMENTS, f"--max-prompt-tokens {length} -n 128 --strategies lookup,knapspec "
            "--peer llama") for length in (512, 1024, 2048, 4096, 7680)),
    bench("cpu-ablation-tau", REPORTS, "--max-prompt-tokens 1024 -n 192 --strategies "
          + paper("tau=-1", "tau=0.3", "tau=0.5", "tau=0.7", "tau=0.9", "tau=0.97", "variant=paper")),
    bench("cpu-ablation-interval", REPORTS, "--max-prompt-tokens 1024 -n 320 --strategies "
          + paper("interval=7", "interval=16", "interval=32", "interval=64", "interval=128", "variant=paper")),
    *(bench(f"cpu-skip-{length}", REPORTS, f"--max-prompt-tokens {length} -n 128 --strategies "
            "'knapspec-paper(interval=16),knapspec-paper(variant=paper;interval=16),swift(iterations=40),knapspec'")
      for length in (512, 2048, 7680)),
    *(bench(f"{device}-deep-{model}-{length}", f"-m models/bytes-deep-{model}.gguf {prompts}", PAPER_METHODS, device)
      for device in ("cpu", "gpu") for model in ("redundant", "plain") for length, prompts in BYTE_PROMPTS.items()),
    serve("cpu-agent", "agent"),
    program("gpu-steps-8b-f16", "build-cuda/device_bench $MODELS/8b-f16.gguf --depths 0,16384 --rows 4,8", "gpu"),
    program("gpu-steps-8b-q4_0", "build-cuda/device_bench $MODELS/8b-q4_0.gguf --depths 0,16384,130000 --rows 4,8", "gpu"),
    program("gpu-steps-default", "build-cuda/device_bench $MODEL --depths 0,7680 --rows 4,8", "gpu"),
    bench("gpu-projections", "-m $MODELS/8b-q4_0.gguf -c 131072 -d 16384,65536,130000", "--assume-acceptance 0.9 "
          "--strategies 'knapspec,static/7/a=w16+1024' -n 128", "gpu"),
    bench("gpu-strategies", CLASSES["document"], "-n 192 --strategies 'lookup,knapspec,knapspec-paper,"
          "knapspec-paper(variant=paper),static/3/a=w16+256' --peer llama", "gpu"),
    program("gpu-shapes", f"build-cuda/shape_bench --shapes {PAPER_MODELS} --kernels own --folder /dev/shm", "gpu"),
]


def writing(pattern):
    """The cells that write files of this name or pattern."""
    return [cell for cell in CELLS if fnmatch.fnmatch(cell.file, pattern)]
