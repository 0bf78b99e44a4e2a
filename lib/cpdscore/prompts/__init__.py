"""The judge's prompts as plain text, one file per variant, in this project's own wording.

``{history}`` and its like mark the places that ``lib.cpdscore.Template.fill`` fills.
"""
