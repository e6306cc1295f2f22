"""The command under capture, from its start to postmortem's exit status.

Read ``command`` (start and wait), ``triggers`` (what begins a capture), ``lifecycle`` (captures, end, diagnoses, in this
order), ``conclusion`` (make and fill the bundle, end the tree), ``background`` (diagnoses while the command goes on).
"""
