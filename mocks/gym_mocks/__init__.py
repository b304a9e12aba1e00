"""An in-process NeMo Gym: what trainers and env authors test against without GPU, model, Ray or network."""
