"""Where raters come from: links, invitations, other sites, and Prolific's API. One way in and out per file."""
