def one_shot_geometric(**k): pass
def one_shot_gaussian(**k): pass
