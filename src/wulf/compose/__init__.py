"""What takes several tools: the whole procedure, any run in any form, a prediction held against the truth."""
