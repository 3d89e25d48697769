"""The pages that raters see, chat and the wizard console."""
