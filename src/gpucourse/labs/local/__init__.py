"""Labs of simulated nodes on this computer."""
