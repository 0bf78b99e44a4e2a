"""A training run on disk: network, optimizer and progress in one safetensors file."""

import hashlib
import json
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file


def save(path: Path, network: torch.nn.Module, optimizer, progress: dict) -> None:
    """Write the state of a run in one step: a killed writer leaves the old file."""
    tensors = {f"network.{name}": tensor for name, tensor in network.state_dict().items()}
    for name, parameter in network.named_parameters():
        for key, value in optimizer.state.get(parameter, {}).items():
            tensors[f"optimizer.{key}.{name}"] = torch.as_tensor(value)
    temporary = path.with_suffix(".tmp")
    save_file(
        {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()},
        temporary,
        metadata={"progress": json.dumps(progress)},
    )
    temporary.rename(path)


def load(path: Path, network: torch.nn.Module, optimizer) -> dict:
    """Put a saved state back into network and optimizer; return the progress."""
    parameters = dict(network.named_parameters())
    with safe_open(path, framework="pt") as file:
        weights = {}
        for key in file.keys():  # noqa: SIM118 - the file is no dict
            part, rest = key.split(".", 1)
            if part == "network":
                weights[rest] = file.get_tensor(key)
                continue
            slot, name = rest.split(".", 1)
            parameter, value = parameters[name], file.get_tensor(key)
            # The step count stays where the optimizer made it; moments follow the parameter.
            optimizer.state[parameter][slot] = (
                value if slot == "step" and parameter.device.type == "cpu"
                else value.to(parameter.device)
            )  # fmt: skip
        network.load_state_dict(weights)
        return json.loads(file.metadata()["progress"])


def weights_sha256(network: torch.nn.Module) -> str:
    """SHA-256 over all weights in the order of their names."""
    digest = hashlib.sha256()
    for name, tensor in sorted(network.state_dict().items()):
        digest.update(name.encode())
        digest.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()
