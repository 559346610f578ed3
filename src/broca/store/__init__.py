"""The store: an SQLite file, the journal, of all measured rows and vectors."""

from broca.store.journal import Journal as Journal
from broca.store.journal import now as now
from broca.store.records import Condition as Condition
from broca.store.records import ItemRecord as ItemRecord
from broca.store.records import components_digest as components_digest
from broca.store.records import restored as restored
from broca.store.records import row_keys as row_keys
from broca.store.records import vector_keys as vector_keys
from broca.store.runs import Replay as Replay
from broca.store.runs import RunRows as RunRows
from broca.store.runs import copy_vectors as copy_vectors
from broca.store.runs import export_rows as export_rows
from broca.store.runs import find_run as find_run
from broca.store.runs import read_condition as read_condition
from broca.store.runs import read_run as read_run
from broca.store.runs import read_runs as read_runs
from broca.store.runs import table_of_rows as table_of_rows
