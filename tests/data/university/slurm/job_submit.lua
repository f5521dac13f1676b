-- What centres refuse: a job without an account, and a job in the GPU partition that asks for no GPU.
function slurm_job_submit(job_desc, part_list, submit_uid)
  if submit_uid == 0 then
    return slurm.SUCCESS
  end
  if job_desc.account == nil then
    slurm.log_user("UNI-HPC: please give your project with --account=NAME (sacctmgr show assoc user=$USER)")
    return slurm.ESLURM_INVALID_ACCOUNT
  end
  if job_desc.partition == "gpu-short" and job_desc.tres_per_node == nil and job_desc.tres_per_job == nil and job_desc.gres == nil then
    slurm.log_user("UNI-HPC: jobs in gpu-short must ask for a GPU: --gres=gpu:TYPE:N")
    return 2072
  end
  return slurm.SUCCESS
end
function slurm_job_modify(job_desc, job_rec, part_list, modify_uid)
  return slurm.SUCCESS
end
return slurm.SUCCESS
