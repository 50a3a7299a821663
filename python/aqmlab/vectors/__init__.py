"""Connection vectors: what the two ends of a TCP connection asked of it, without TCP (the a-b-t model).

Hernandez-Campos, Jeffay and Smith, "Modeling and generating TCP application workloads", IEEE Broadnets 2007, and
Hernandez-Campos' thesis of 2006 (University of North Carolina); Weigle et al., "Tmix", CCR 36(3), 2006.
"""

from aqmlab.vectors.convert import Converted, convert
from aqmlab.vectors.cvec import FORMATS, write
from aqmlab.vectors.model import ACCEPTOR, INITIATOR, Unit, Vector

__all__ = ["ACCEPTOR", "FORMATS", "INITIATOR", "Converted", "Unit", "Vector", "convert", "write"]
