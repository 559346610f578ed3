"""Tasks of lm-eval and shipped tasks, with their items, splits and metrics."""

from broca.options import TaskOptions as TaskOptions
from broca.tasks.benchmark import Benchmark as Benchmark
from broca.tasks.catalog import PAPER_GROUPS as PAPER_GROUPS
from broca.tasks.catalog import PAPER_TASKS as PAPER_TASKS
from broca.tasks.catalog import Catalog as Catalog
from broca.tasks.catalog import listed as listed
from broca.tasks.catalog import shipped_folder as shipped_folder
from broca.tasks.examples import Task as Task
from broca.tasks.examples import Tasks as Tasks
from broca.tasks.items import Generation as Generation
from broca.tasks.items import Item as Item
from broca.tasks.items import LogLikelihood as LogLikelihood
from broca.tasks.items import Margin as Margin
from broca.tasks.items import Output as Output
from broca.tasks.items import Request as Request
from broca.tasks.items import Split as Split
from broca.tasks.tokenizer import RequestTokenizer as RequestTokenizer
from broca.tasks.tokenizer import require_context as require_context
from broca.tasks.tokenizer import says_date as says_date
