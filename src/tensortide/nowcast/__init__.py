"""Nowcasts of late counts: reporting triangles, completed with calibrated intervals."""
