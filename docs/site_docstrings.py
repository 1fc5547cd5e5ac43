"""How docstrings become pages of the API: examples as code, all options of models in tables."""

import ast
import re
import runpy
from pathlib import Path
from typing import Any

import griffe

SPARK_PARAMS = Path(__file__).parents[1] / "src/safecf/spark/params.py"
SPARK_MODELS = {
    "IALS": "PlainLossParams",
    "ERMMF": "NormalisedLossParams",
    "SAFER2": "SmoothedTailParams",
}
DEFAULTS = runpy.run_path(str(Path(__file__).parents[1] / "src/safecf/defaults.py"))
DOCTEST = re.compile(r"^>>> .*?(?=^\s*$|\Z)", re.DOTALL | re.MULTILINE)
SECTION = re.compile(r"^Parameters\n-+\n(.*?)\n\n(?=\w+\n--|\Z)", re.DOTALL | re.MULTILINE)
# The options that only some ALS models have; `ALSModel` explains the others.
OWN_OPTIONS = {
    "kernel": "K, the smoothing kernel: one of `safecf.als.kernels.KERNELS`.",
    "bandwidth": 'h, how smooth the tail is. "auto" is 1.5 standard deviations of the losses.',
    "quantile_steps": "The most Newton steps for xi per epoch.",
    "quantile_sample": "The share of users that these steps look at.",
    "normalisation": "rho: losses are divided by |V_u|^rho, from a mean (1) to a sum (0).",
    "ridge_in_risk": "Whether the risk holds the users' ridge; False is the paper's form.",
    "ridge_exponent": "nu: ridges grow with the length of histories to this power.",
    "block_size": "B, the number of coordinates that are solved at once.",
    "step_size": "tau, the length of a gradient step.",
    "optimizer": 'How gradients become steps: "sgd" or "adam".',
}


def fenced(docstring: str) -> str:
    """Put examples into fences, unless they are in a section of their own."""
    text, *section = docstring.split("\nExamples\n")
    text = DOCTEST.sub(lambda found: f"```pycon\n{found[0].rstrip()}\n```\n", text)
    return "\nExamples\n".join([text, *section])


def explained(docstring: str) -> dict[str, str]:
    r"""Return what a docstring says of each parameter.

    >>> explained("A model.\n\nParameters\n---\nfactors\n    d, the length.\n\n")
    {'factors': '    d, the length.'}
    """
    found = SECTION.search(f"{docstring}\n\n")
    parts = re.split(r"^(\w+)\n", found[1], flags=re.MULTILINE)[1:] if found else []
    return {name: text.rstrip() for name, text in zip(parts[::2], parts[1::2], strict=True)}


def with_parameters(docstring: str, options: dict[str, str]) -> str:
    """Write the section of the parameters anew; their types and defaults come from the code."""
    written = "".join(f"{name}\n{text}\n" for name, text in options.items())
    written = f"Parameters\n----------\n{written}\n"
    text, count = SECTION.subn(lambda _: written, f"{docstring}\n\n")
    return text if count else f"{docstring}\n\n{written}"


def spark_params() -> dict[str, list[str]]:
    """Return, by class of `safecf.spark.params`, the rows of a table of its Params, with bases."""
    texts: dict[str, Any] = {}
    rows: dict[str, list[str]] = {}
    for node in ast.parse(SPARK_PARAMS.read_text()).body:
        match node:
            case ast.Assign([ast.Name(name)], ast.Constant(str(text))):
                texts[name] = text
            case ast.ClassDef(name, bases):
                found = [row for base in bases for row in rows.get(ast.unparse(base), [])]
                for each in node.body:
                    match each:
                        case ast.Assign(_, ast.Call(ast.Name("declare"), [param, doc, *_])):
                            about = eval(ast.unparse(doc), texts).replace("|", "\\|")
                            found.append(f"| `{ast.literal_eval(param)}` | {about} |")
                rows[name] = found
    return rows


class Docstrings(griffe.Extension):  # type: ignore[misc]
    """Changes docstrings and values before they are shown."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Show examples as code."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)

    def on_attribute_instance(self, *, attr: griffe.Attribute, **_: Any) -> None:
        """Show the default of an option, `option(256, RULE)`, as 256."""
        value = attr.value
        if isinstance(value, griffe.ExprCall) and value.canonical_path.endswith("option"):
            default = str(value.arguments[0])
            attr.value = repr(DEFAULTS[default]) if default in DEFAULTS else default
            attr.extra["safecf"]["option"] = True

    def on_package(self, *, pkg: griffe.Module, **_: Any) -> None:
        """List all options of every ALS model, those of its bases as well."""
        base = pkg["models.als.ALSModel"]
        shared = explained(base.docstring.value)
        known = shared | {name: f"    {text}" for name, text in OWN_OPTIONS.items()}
        catalogue = pkg["models.catalogue"]
        for name in ("ALSModel", *catalogue.exports):
            model = base if name == "ALSModel" else catalogue[str(name)]
            kinds = [*reversed(model.mro()), model]
            own = [each for kind in kinds for each in kind.members.values() if each.is_attribute]
            options = {each.name: known[each.name] for each in own if each.extra["safecf"]}
            model.docstring.value = with_parameters(model.docstring.value, options)
        rows = spark_params()
        estimators = pkg["spark.estimators"]
        for name, params in SPARK_MODELS.items():
            table = "\n".join(["| Param | meaning |", "|---|---|", *rows[params]])
            estimators[name].docstring.value += f"\n\n{table}\n"
