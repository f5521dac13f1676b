"""Services that moto does not have, or not for what this project asks."""
