srun --partition=gpu --gres=gpu:1 --time=00:30:00 --pty bash
