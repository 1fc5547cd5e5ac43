"""Presets with another solver: those of the paper, beside the library's default."""

from dataclasses import replace

from safecf.models.presets import Preset

BLOCKWISE = {"IALS": "IALSPP", "SAFER2": "SAFER2PP"}
ADAM_STEP = 0.03  # the best of .003 to .2 for the validation users of ML-1M, 50 epochs


def epochs(preset: Preset, count: int) -> Preset:
    """Set the number of epochs."""
    return _with(preset, preset.name, iterations=count)


def exact(preset: Preset) -> Preset:
    """Solve every row by Cholesky, as the paper does for iALS, ERM-MF and SAFER2."""
    return _with(preset, f"{preset.name}, exact", solver="exact")


def cg(preset: Preset) -> Preset:
    """Solve rows by the paper's conjugate gradients: SAFER2-CG."""
    return replace(preset, name=f"{preset.name}-CG", model="SAFER2CG")


def blockwise(preset: Preset, size: int) -> Preset:
    """Solve by blocks of coordinates: iALS++ or SAFER2++."""
    return replace(
        preset,
        name=f"{preset.name}++",
        model=BLOCKWISE[preset.model],
        options={**preset.options, "block_size": min(size, preset.options["factors"])},
    )


def adam(preset: Preset) -> Preset:
    """Train CVaR-MF by Adam instead of plain gradient steps."""
    return _with(preset, f"{preset.name}, Adam", optimizer="adam", step_size=ADAM_STEP)


def _with(preset: Preset, name: str, **options: object) -> Preset:
    return replace(preset, name=name, options={**preset.options, **options})
