"""What a miss costs: the losses by name, and one's own."""

from tensortide.core.losses.custom import Custom as Custom
from tensortide.core.losses.standard import LOSSES as LOSSES
from tensortide.core.losses.standard import Bernoulli as Bernoulli
from tensortide.core.losses.standard import Gamma as Gamma
from tensortide.core.losses.standard import Huber as Huber
from tensortide.core.losses.standard import Loss as Loss
from tensortide.core.losses.standard import NegativeBinomial as NegativeBinomial
from tensortide.core.losses.standard import Poisson as Poisson
from tensortide.core.losses.standard import Squared as Squared
