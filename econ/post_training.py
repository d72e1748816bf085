"""After pre-training: full and parameter-efficient fine-tuning, and reinforcement learning with rollouts.

Rollouts are generation, so their rate comes from the inference engine (tokens/s an accelerator at the batch used);
updates are training, so theirs comes from the step-time engine.
"""

from __future__ import annotations

from dataclasses import dataclass

from econ.failures import require_positive
from econ.performance.training_memory import RECIPES, StateRecipe
from econ.training_run import TrainingRunError, rental_usd

__all__ = ["FineTune", "RolloutCost", "RolloutPlan", "fine_tune", "rollout_cost"]


@dataclass(frozen=True)
class FineTune:
    """Operations, state bytes and trained parameters of a fine-tuning run."""

    operations: float
    state_bytes: float
    trained_params: float


def fine_tune(
    params: float, tokens: float, trained_share: float = 1.0, recipe: str = "adam_mixed", weight_bytes: float = 2.0
) -> FineTune:
    """Fine-tuning of all parameters (6 N D) or of adapters (4 N D: no weight gradients of the base model).

    State: the frozen weights at `weight_bytes` a parameter (0.5 for 4-bit bases) and the full recipe for trained
    parameters.

    >>> full, lora = fine_tune(70e9, 1e9), fine_tune(70e9, 1e9, trained_share=0.002)
    >>> full.operations / 1e20, round(lora.operations / full.operations, 3), round(lora.state_bytes / 1e9, 1)
    (4.2, 0.669, 142.2)
    """
    require_positive(params=params, tokens=tokens, trained_share=trained_share)
    if trained_share > 1:
        raise TrainingRunError(f"trained_share = {trained_share!r} is a share of parameters, at most one")
    state: StateRecipe = RECIPES[recipe]
    if trained_share == 1.0:
        return FineTune(6 * params * tokens, params * state.total, params)
    trained = params * trained_share
    operations = 4 * params * tokens + 6 * trained * tokens
    return FineTune(operations, params * weight_bytes + trained * state.total, trained)


@dataclass(frozen=True)
class RolloutPlan:
    """Reinforcement learning: prompts x samples rollouts, generated and then trained on (tokens of a rollout on
    average)."""

    prompts: float
    samples_per_prompt: float
    prompt_tokens: float
    output_tokens: float
    output_tokens_per_s_per_accelerator: float
    trained_tokens_per_s_per_accelerator: float
    kept_share: float = 1.0
    environment_s_per_rollout: float = 0.0
    concurrent_rollouts_per_accelerator: float = 1.0


@dataclass(frozen=True)
class RolloutCost:
    """Accelerator-hours and USD of a reinforcement-learning run, split by what they do."""

    rollouts: float
    generation_hours: float
    waiting_hours: float
    update_hours: float
    usd: float

    @property
    def generation_share(self) -> float:
        """Share of accelerator-hours that generation and its waiting take."""
        busy = self.generation_hours + self.waiting_hours
        return busy / (busy + self.update_hours)


def rollout_cost(plan: RolloutPlan, usd_per_accelerator_hour: float) -> RolloutCost:
    """Hours and price of rollouts and updates; accelerators held while an environment answers are paid too.

    >>> plan = RolloutPlan(10_000, 16, 1000, 4000, 2000.0, 8000.0)
    >>> cost = rollout_cost(plan, 2.0)
    >>> round(cost.generation_hours, 1), round(cost.update_hours, 1), round(cost.usd)
    (88.9, 27.8, 233)

    Raises:
        FailureError: when a rate or count is not positive.
    """
    require_positive(
        prompts=plan.prompts,
        samples_per_prompt=plan.samples_per_prompt,
        output_tokens=plan.output_tokens,
        output_rate=plan.output_tokens_per_s_per_accelerator,
        update_rate=plan.trained_tokens_per_s_per_accelerator,
        concurrent=plan.concurrent_rollouts_per_accelerator,
    )
    if not 0 < plan.kept_share <= 1:
        raise TrainingRunError(f"kept_share = {plan.kept_share!r} is the share of rollouts trained on, above zero")
    rollouts = plan.prompts * plan.samples_per_prompt
    generation = rollouts * plan.output_tokens / plan.output_tokens_per_s_per_accelerator / 3600
    waiting = rollouts * plan.environment_s_per_rollout / plan.concurrent_rollouts_per_accelerator / 3600
    trained = rollouts * plan.kept_share * (plan.prompt_tokens + plan.output_tokens)
    update = trained / plan.trained_tokens_per_s_per_accelerator / 3600
    return RolloutCost(
        rollouts, generation, waiting, update, rental_usd(generation + waiting + update, usd_per_accelerator_hour)
    )
