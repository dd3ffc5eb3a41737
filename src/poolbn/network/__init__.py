"""`Network`: files, other formats, new data sets, interventions, effects."""
