"""The methods by name, and what each can take."""

from tensortide.methods.baselines import cp_stream as cp_stream
from tensortide.methods.baselines import cpc_als as cpc_als
from tensortide.methods.baselines import em_als as em_als
from tensortide.methods.baselines import em_als_decay as em_als_decay
from tensortide.methods.baselines import mast as mast
from tensortide.methods.baselines import olstec as olstec
from tensortide.methods.baselines import online_cpd as online_cpd
from tensortide.methods.baselines import online_sgd as online_sgd
from tensortide.methods.baselines import rlst as rlst
from tensortide.methods.baselines import sdt as sdt
from tensortide.methods.registry import METHODS as METHODS
from tensortide.methods.registry import gocpt as gocpt
from tensortide.methods.registry import gocpte as gocpte
