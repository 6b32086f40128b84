"""From a molecule to conformers in space."""
