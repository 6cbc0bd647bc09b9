"""Streams that are made, for tests and first tries."""

from tensortide.simulate.hospital import admissions as admissions
from tensortide.simulate.streams import LowRank as LowRank
from tensortide.simulate.streams import Stream as Stream
from tensortide.simulate.streams import growth as growth
from tensortide.simulate.streams import low_rank as low_rank
from tensortide.simulate.streams import random_mask as random_mask
from tensortide.simulate.streams import reporting as reporting
from tensortide.simulate.streams import revise as revise
