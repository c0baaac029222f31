"""The worker: owns the device, runs cases, answers with judgements. The only users of torch in kcheck."""
